# Look-alike letters.
printf 'ЅPEC: a
ІNPUT: b
ОBSERVED: c
' > failed_specs.md
