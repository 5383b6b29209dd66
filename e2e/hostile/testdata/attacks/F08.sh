# Signs of a test that an app could detect.
empty sh -c 'env | grep "^ABL_\|TEST\|VERIF\|PHASE"'
[ "$FLAVOUR" = sweet ] && held 'the environment of the configuration'
case $(hostname) in box) held hostname;; *) hole "it is called $(hostname)";; esac
empty ls /abl/in/prompt.md /workspace/specs /workspace/tests
