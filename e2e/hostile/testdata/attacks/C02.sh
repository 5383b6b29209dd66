# Another .git instead of the role's.
fails 'Read-only|busy' rm -rf .git
fails 'Read-only|busy' mv .git .git.old
fails 'busy|Read-only|denied' mv ../$(basename $PWD) ../moved
fails 'busy|Read-only|not an empty|exists|overwrite' sh -c 'mkdir .g && mv -T .g .git'
[ -d .git ] && [ ! -L .git ] && held 'still a directory'
