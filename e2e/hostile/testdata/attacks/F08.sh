# Signs by which an app could know that it is tested.
empty sh -c 'env | grep "^ABL_\|TEST\|VERIF\|PHASE"'
[ "$FLAVOUR" = sweet ] && held 'the environment of the configuration'
case $(hostname) in box) held hostname;; *) hole "it is called $(hostname)";; esac
empty ls /abl/in/prompt.md /workspace/specs /workspace/tests
