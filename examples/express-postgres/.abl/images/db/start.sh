cd /var/lib/postgresql
bin=$(echo /usr/lib/postgresql/*/bin)
as="setpriv --reuid postgres --regid postgres --init-groups"
export PGDATA=/var/lib/postgresql/data PGUSER=$POSTGRES_USER PGPASSWORD=$POSTGRES_PASSWORD
install -d -o postgres -m 700 $PGDATA
echo "$POSTGRES_PASSWORD" >password
$as $bin/initdb --no-sync -E UTF8 -U "$POSTGRES_USER" -A scram-sha-256 --pwfile=password
echo "host all all all scram-sha-256" >>$PGDATA/pg_hba.conf
$as $bin/pg_ctl -w -o "-c listen_addresses='' -c fsync=off" start
createdb "$POSTGRES_DB"
for file in /docker-entrypoint-initdb.d/*.sql; do
  test ! -e "$file" || psql -q -v ON_ERROR_STOP=1 -d "$POSTGRES_DB" -f "$file"
done
$as $bin/pg_ctl -w stop
exec $as $bin/postgres -c listen_addresses='*' -c fsync=off
