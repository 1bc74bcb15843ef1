"""How Sphinx builds the site: `make docs`."""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

import measured  # noqa: E402
import staging  # noqa: E402

import safesift  # noqa: E402

# a name that is found when it is asked for: whoever imports by name finds it here
sys.modules["safesift.blocks"] = safesift.blocks
# the same pages on every machine: examples take their small stand-ins
os.environ.pop("SAFESIFT_DATA", None)
os.environ["MPLBACKEND"] = "Agg"

project = "safesift"
author = "the safesift developers"
version = release = safesift.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
# a dash is a dash, and quotes in messages are as they are printed
smartquotes = False
# indented lines are commands and formulas as often as Python
highlight_language = "none"
toc_object_entries_show_parents = "hide"
# `name` in a docstring is a name: linked where it has a page, see `_linked_name`
default_role = "py:obj"

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath", "substitution"]
# formulas are written as ```math, which GitHub draws as well
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3
myst_substitutions = {"front_figure": measured.front().markdown()}

# one file of MathJax, which has its own letters: pages read the same without a network. It comes
# from PyPI like all else, so that neither npm nor a CDN is needed.
_mathjax = importlib.util.find_spec("sphinx-mathjax-offline")
mathjax_path = "tex-svg.js"

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static", str(Path(_mathjax.origin).parent / "static/mathjax/tex-svg.js")]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_title = "safesift"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "safesift"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    # the lines of a program need the room
    "secondary_sidebar_items": {"**": ["page-toc"]}
    | {f"{staging.gallery_of(path)}/{path.stem}": [] for path in staging.examples()},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"index": [], "measured": [], "measured_race": []}
copyright = "the safesift developers, BSD-3-Clause"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": [f"../build/examples/{name}" for name in staging.GALLERIES],
    "gallery_dirs": list(staging.GALLERIES),
    # it starts three processes and kills one: shown, not run
    "filename_pattern": r"/(?!on_a_cluster)\w+\.py$",
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("safesift",),
    "reference_url": {"safesift": None},
    "backreferences_dir": "gallery/backreferences",
    "default_thumb_file": str(HERE / "_static" / "no_picture.png"),
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
}


def _our_methods(kind: type) -> list[str]:
    """Those that the library itself has given a class, in the order of the alphabet."""
    static = {name: inspect.getattr_static(kind, name) for name in dir(kind) if name[0] != "_"}
    return [
        name
        for name, method in static.items()
        if inspect.isfunction(getattr(method, "__func__", method))
        and method.__module__.startswith("safesift")
    ]


def _public_classes() -> dict[str, type]:
    """Of the package and of its public modules, by the names that their pages have."""
    found = {}
    for name in safesift.__all__:
        thing = getattr(safesift, name)
        inside = vars(thing).items() if inspect.ismodule(thing) else ()
        found |= {f"safesift.{name}": thing} | {f"safesift.{name}.{one}": x for one, x in inside}
    return {name: thing for name, thing in found.items() if inspect.isclass(thing)}


# for _templates/autosummary/class.rst
autosummary_context = {
    "our_methods": {name: _our_methods(kind) for name, kind in _public_classes().items()}
}


def _as_it_is_meant(app, what, name, obj, options, lines):
    """|x| is a number without its sign, and `coef_` ends in an underscore: reST has other ideas."""
    lines[:] = [
        line if line.lstrip().startswith((">>>", "...")) else _MARKUP.sub(_escaped, line)
        for line in lines
    ]


# what is code already, or else what has to be escaped
_MARKUP = re.compile(r"(`+.+?`+)|(?<!\\)(\||(?<=\w)_(?=[\s,)]))")


def _escaped(found):
    return found[1] or f"\\{found[2]}"


def _linked_name(app, env, node, contnode):
    """The page of a name that is written without its module; code where it has none."""
    if node.get("reftype") != "obj":
        return None
    python, name = env.get_domain("py"), f"safesift.{node['reftarget'].removeprefix('ss.')}"
    page = node.get("refdoc", "")
    return python.resolve_xref(env, page, app.builder, "obj", name, node, contnode) or contnode


def _page_read(app, name, text):
    """Pages lie directly in docs; what is deeper is made by machines, and right as it is."""
    if "/" not in name:
        text[0] = staging.linked(text[0], f"docs/{name}.md")


def _include_read(app, path, parent, text):
    text[0] = staging.linked(text[0], os.path.relpath(app.srcdir / path, ROOT))


def _prepare(app):
    staging.stage(ROOT / "build" / "examples")
    staging.forget(HERE / "api", (HERE / "api.rst").read_text())
    measured.write(HERE)


def setup(app):
    app.connect("builder-inited", _prepare, 100)  # before galleries and pages are made of it
    app.connect("autodoc-process-docstring", _as_it_is_meant, 600)  # after numpydoc
    app.connect("source-read", _page_read)
    app.connect("include-read", _include_read)
    app.connect("missing-reference", _linked_name)
