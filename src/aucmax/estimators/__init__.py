"""The estimators that users construct."""
