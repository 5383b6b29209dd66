# The Builder's image, and the app's: abl's own with Debian's Flask on top.
ARG ABL_IMAGE
FROM ${ABL_IMAGE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3-flask \
 && rm -rf /var/lib/apt/lists/*
