# The Builder's image, and the app's: abl's own with Go on top.
ARG ABL_IMAGE
FROM ${ABL_IMAGE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends golang-go \
 && rm -rf /var/lib/apt/lists/*
# Roles write to /tmp and to their workspace alone. There is no C compiler.
ENV GOCACHE=/tmp/go-build GOPATH=/tmp/go CGO_ENABLED=0
