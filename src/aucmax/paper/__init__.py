"""The paper's methods, data, protocol, tables, figure and claims (Khalid, Ray and Chitsaz, 2018)."""
