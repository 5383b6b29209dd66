#!/bin/bash
# The Slurm job of abl submit --on slurm: one task runs the phases of one project. Change it as your
# cluster needs. abl replaces the words in double braces.
#SBATCH --output=abl-%A_%a.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@300
#SBATCH --time=12:00:00
#SBATCH --cpus-per-task=2
#SBATCH --mem=6G
##SBATCH --licenses=abl:1
# The licence caps the calls of models that run at once: Licenses=abl:20 in slurm.conf.
# --requeue starts the job again if its node is lost. --signal leaves 300 seconds to stop before --time ends.
set -eu

projects() {
  cat <<'PROJECTS'
{{projects}}
PROJECTS
}
IFS=$'\t' read -r repository branch directory < <(projects | sed -n "${SLURM_ARRAY_TASK_ID:-1}p")

# Variables such as GEMINI_API_KEY. abl submit passes its environment without secrets.
keys=${ABL_ENV_FILE:-$HOME/.config/abl/env}
if [ -r "$keys" ]; then set -a; . "$keys"; set +a; fi

# The clone stays on the node, so a job that is requeued here finds its running call. Use a local disk.
work=${ABL_WORK:-/var/tmp/abl-$(id -un)}
clone=$work/$(printf '%s %s' "$repository" "$branch" | sha256sum | cut -c1-16)
mkdir -p "$work"
if [ ! -d "$clone/.git" ]; then
  rm -rf "$clone.new"
  git clone -q --branch "$branch" "$repository" "$clone.new"
  mv "$clone.new" "$clone"
else
  git -C "$clone" pull -q --ff-only origin "$branch"
fi

requeue=no child=
stop() { if [ -n "$child" ]; then kill -TERM "$child" 2>/dev/null || true; fi; }
trap 'requeue=time; stop' USR1 # the time limit is near
trap stop TERM INT             # scancel

run() {
  abl -C "$clone/$directory" "$@" --remote origin --progress plain &
  child=$!
  code=0
  wait "$child" || code=$?
  while kill -0 "$child" 2>/dev/null; do code=0; wait "$child" || code=$?; done # a signal ended the wait
  child=
}

set -- {{phases}}
code=0
if [ $# = 0 ]; then run run --through; fi
for phase in "$@"; do
  run phase "$phase"
  if [ "$code" != 0 ] || [ "$requeue" != no ]; then break; fi
done

case $code in 11 | 75) requeue=later ;; esac # another run holds the project, or the provider is away
if [ "$code" = 0 ]; then requeue=no; fi
if [ "$requeue" != no ]; then
  job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
  job=${job:-$SLURM_JOB_ID}
  echo "abl ended with exit code $code; requeue ($requeue)" >&2
  scontrol requeue "$job"
  if [ "$requeue" = later ]; then scontrol update "JobId=$job" "StartTime=now+${ABL_LATER:-900}" || true; fi
fi
exit "$code"
