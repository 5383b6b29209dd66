# The Builder's image, and the app's: abl's own with what this project needs on
# top. Python 3 is in abl's image already, so nothing has to be added; uncomment
# `images:` in config.yaml when you add something.
ARG ABL_IMAGE
FROM ${ABL_IMAGE}
# RUN apt-get update \
#  && apt-get install -y --no-install-recommends sqlite3 \
#  && rm -rf /var/lib/apt/lists/*
