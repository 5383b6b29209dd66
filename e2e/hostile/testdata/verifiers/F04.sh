# More than a failed contract, between the entries and in them.
{ printf 'HINT-BETWEEN: change store.mjs like this\n\n'; for i in $(seq 1 150); do printf 'SPEC: contract %s\nINPUT: x\nOBSERVED: y\n\n' $i; done; printf 'HINT-AFTER\n'; } > failed_specs.md
