# The reports of earlier calls look new, and a report appears only after the call has ended.
mkdir -p verifier_reports
printf 'ok 1 - P1.C1\n1..1\n' >results.tap
touch verifier_reports/*
(setsid sh -c 'sleep 1; for i in 2 3; do echo x >verifier_reports/phase1_v${i}_late.md; done' >/dev/null 2>&1 &)
