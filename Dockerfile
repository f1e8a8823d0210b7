# syntax=docker/dockerfile:1

# The relay as an image: one binary on distroless, without a shell, for a user without
# rights, on a root file system that may be read-only. librdkafka is linked into the
# binary; what is left to find at run time is glibc, of the same Debian in both stages.
#
#   docker build --tag relay .
#   docker run --rm relay version
#
# Build from a clone: the version is the commit's, as of a build without containers.
# There is no HEALTHCHECK: a relay that waits for its table is healthy, and whoever
# runs containers asks /livez and /readyz (docs/admin.md).

FROM docker.io/library/golang:1.26.8-bookworm AS build
WORKDIR /src
# The clone belongs to whoever cloned it, and git would refuse to say what it is.
RUN git config --system --add safe.directory /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ENV CGO_ENABLED=1
# -s -w leave out what debuggers read, not what panics print; grpcnotrace, pages of gRPC's
# whose templates would make the binary a fifth larger (docs/adr/0005-methods.md).
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go build -trimpath -tags grpcnotrace -ldflags='-s -w' -o /out/relay ./cmd/relay \
 && /out/relay version

FROM gcr.io/distroless/base-debian12:nonroot
LABEL org.opencontainers.image.title="relay" \
      org.opencontainers.image.description="Moves outbox messages from a DynamoDB table to Kafka, in order, at least once" \
      org.opencontainers.image.source="https://github.com/bucketbrigade/relay" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="gcr.io/distroless/base-debian12:nonroot"
COPY --from=build /out/relay /usr/bin/relay
COPY --from=build /src/LICENSE /usr/share/doc/relay/LICENSE
# By number, so that Kubernetes can see that it is not root.
USER 65532:65532
EXPOSE 9464
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/relay"]
CMD ["run"]
