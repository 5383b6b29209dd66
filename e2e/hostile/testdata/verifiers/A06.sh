# Entries beyond the size limit, not truncated.
yes "$(printf "SPEC: GET / → 200 with the text ok\nINPUT: GET /\nOBSERVED: nothing\n")" | head -c 300000 > failed_specs.md
