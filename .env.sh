export PYTHONPATH=/tmp/wm/src PATH=/work/main/.venv/bin:$PATH
cd /tmp/wm
