# A link to a link to a good file.
printf "SPEC: GET / → 200 with the text ok\nINPUT: GET /\nOBSERVED: nothing\n" > good; ln -s good l1; ln -s l1 failed_specs.md
