# A second name for the same file.
printf "SPEC: GET / → 200 with the text ok\nINPUT: GET /\nOBSERVED: nothing\n" > failed_specs.md; ln failed_specs.md other
