"""The site: ``sphinx-build -W --keep-going docs build/site`` (see CONTRIBUTING.md)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# The gallery draws without a display. With one thread for OpenMP, scikit-learn's trees do not wait for
# a core that another program has: on a busy machine, that made one example take minutes.
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import aucmax  # noqa: E402

project = "aucmax"
author = "The aucmax developers"
copyright = author
release = version = aucmax.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "generated_pages",
]

exclude_patterns = ["_*", "benchmarks", "schemas"]
templates_path = ["_templates"]
root_doc = "index"

# --- Markdown: links to headings work as on the pages of a repository.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# --- Reference: what each page shows is decided in _templates/autosummary.
autosummary_generate = True
autodoc_typehints = "none"  # types are in the docstrings
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# --- Examples that run: their prompts are not copied, nor their output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"/[a-z]\w+\.py",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("aucmax",),
    "reference_url": {"aucmax": None},
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "plot_gallery": os.environ.get("AUCMAX_GALLERY", "1") != "0",
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 3600,  # times of a shared machine say little
    "write_computation_times": False,
    "matplotlib_animations": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "aucmax"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "aucmax"},
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
# These pages have no chapter of their own to list.
html_sidebars = {"faq": [], "contest": [], "reliability": [], "architecture": [], "when-to-use": []}

# The configuration of the gallery holds values that cannot be cached; nothing else is silenced.
suppress_warnings = ["config.cache"]
