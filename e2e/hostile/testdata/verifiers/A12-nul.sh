# UTF-16, as some editors write.
printf 'SPEC: a
INPUT: b
OBSERVED: c
' | iconv -t UTF-16LE > failed_specs.md
