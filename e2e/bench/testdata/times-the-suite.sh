# Writes the milliseconds that run.sh takes into alone.ms.
begin=$(date +%s%N)
./run.sh >/tmp/out
end=$(date +%s%N)
echo $(((end - begin) / 1000000)) >alone.ms
