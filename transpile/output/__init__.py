"""The output folder: kernel files, their bases and maps, the manifest.

reads   GeneratedKernel values and what is in OUT          writes  files in OUT, whole or not at all
`write_folder` is a run of the command, `check_folder` is `--check`.
"""
