# The specs.
fails 'Read-only|denied' sh -c 'echo x >> /workspace/specs/phase1.md'
fails 'Read-only|denied' touch /workspace/specs/phase2.md
fails 'Read-only|denied' chmod 777 /workspace/specs /workspace/specs/phase1.md
fails 'Read-only|busy' mv /workspace/specs/phase1.md /tmp/
fails 'Read-only|busy' rm -rf /workspace/specs
fails 'Read-only|busy|cross-device' mv /workspace/specs /workspace/other
fails 'Invalid cross|Read-only|cross-device' ln /workspace/specs/phase1.md ./linked
fails 'permitted|denied|must be superuser' mount -o remount,rw /workspace/specs
fails 'permitted|denied|must be superuser' umount /workspace/specs
fails 'Read-only|No such|not a mount|permitted' sh -c 'mkdir /workspace/specs/sub'
