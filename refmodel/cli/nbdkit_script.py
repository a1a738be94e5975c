"""The script that nbdkit runs. nbdkit-python-plugin(3) finds the callbacks in it by name."""

from refmodel.cli.commands import run_on
from refmodel.serving.nbdkit_plugin import Plugin

API_VERSION = 2
plugin = Plugin(run_on)

config, after_fork, cleanup = plugin.config, plugin.after_fork, plugin.cleanup
thread_model, list_exports = plugin.thread_model, plugin.list_exports
default_export, open, close = plugin.default_export, plugin.open, plugin.close
get_size, block_size = plugin.get_size, plugin.block_size
can_write, can_flush, can_trim = plugin.can_write, plugin.can_flush, plugin.can_trim
can_zero, can_fast_zero = plugin.can_zero, plugin.can_fast_zero
can_extents, can_fua, can_multi_conn = plugin.can_extents, plugin.can_fua, plugin.can_multi_conn
pread, pwrite, flush = plugin.pread, plugin.pwrite, plugin.flush
trim, zero, extents = plugin.trim, plugin.zero, plugin.extents
