# Image of the Builder and of the app: abl's image with the tools of this project. It already has
# Python 3. If you add a tool, uncomment `images:` in config.yaml.
ARG ABL_IMAGE
FROM ${ABL_IMAGE}
# RUN apt-get update \
#  && apt-get install -y --no-install-recommends sqlite3 \
#  && rm -rf /var/lib/apt/lists/*
