# Attacks that work in a container without abl's defences.
./attacker mknod_char,chroot,raw_icmp,packet,setgroups,chown,io_uring_setup
cp /bin/sh s
chmod 4755 s
touch /etc/x && echo HOLE: root
sleep 9 & # a process to write into
sh -c "exec 3<>/proc/$!/mem" && echo HOLE: memory
./attacker steers
