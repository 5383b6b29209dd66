# The role's own commits, branches and tags.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@x
w='Read-only|denied|unable|annot|ailed'
fails "$w" git commit --allow-empty -qm phase1/build/step-1
fails "$w" git add -A
fails "$w|not a valid" git branch evil
fails "$w" git tag phase1/passed
fails "$w" git update-ref refs/heads/main 0000000000000000000000000000000000000001
fails "$w" git symbolic-ref HEAD refs/heads/evil
fails "$w" git gc
git reflog expire --expire=now --all; git prune --expire=now; git stash
held 'and whatever else git can do'
