# A field that contains a program.
{ printf 'SPEC: a\nINPUT: b\nOBSERVED: '; head -c 150000 /dev/zero | tr '\000' q; printf TAIL-OF-FIELD; } > failed_specs.md
