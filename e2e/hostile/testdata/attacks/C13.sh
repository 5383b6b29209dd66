# Attributes that name programs.
rm -f .gitattributes
mkdir -p attr
cd attr
printf '* filter=evil diff=evil merge=evil\n*.x ident eol=crlf working-tree-encoding=UTF-16\n' > .gitattributes &&
printf 'a$Id$\n' > t.x &&
printf '#!/bin/sh\ntouch it-ran\n' > evil && chmod +x evil && held made
