"""The routes, one file per capability."""

from starlette.convertors import register_url_convertor

from homing.server.addresses import NameConvertor

# Here, since a pattern can be used only after it is known, and this runs before any route is declared.
register_url_convertor("name", NameConvertor())
