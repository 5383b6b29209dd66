# A hook in a writable history.
printf '#!/bin/sh\ntouch it-ran\n' > .git/hooks/pre-commit
chmod +x .git/hooks/pre-commit
