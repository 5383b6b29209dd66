ARG ABL_IMAGE
FROM ${ABL_IMAGE}
ARG TARGETARCH
USER 0:0
LABEL abl.test=buildkit
COPY --from=REFERENCE --chmod=0644 /note /etc/note
RUN --mount=type=cache,target=/cache echo "for $TARGETARCH NONCE" > /etc/architecture
