# A label without an entry.
printf 'spec: x
' > failed_specs.md
