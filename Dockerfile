# The wheel of `make dist` with the dependencies of constraints.txt. `make image` builds it; mount a project at /project:
#     docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/project" evalmeta run tests
FROM python:3.13-slim AS build
WORKDIR /build
# Older versions of pip refuse a requirement that only a constraint pins.
RUN python -m venv /opt/evalmeta && /opt/evalmeta/bin/pip install --no-cache-dir 'pip>=26.3'
COPY constraints.txt dist/*.whl ./
# Extras such as "[llm,keyring]"; none by default, because pandas and pyarrow alone have 250 MB.
ARG EXTRAS=""
RUN wheel=$(ls "$PWD"/*.whl) \
 && echo "evalmeta$EXTRAS @ file://$wheel --hash=sha256:$(sha256sum "$wheel" | cut -d ' ' -f 1)" >requirements.txt \
 && /opt/evalmeta/bin/pip install --no-cache-dir --require-hashes --constraint constraints.txt --requirement requirements.txt \
 && /opt/evalmeta/bin/pip uninstall --yes pip

FROM python:3.13-slim
RUN useradd --create-home --uid 10001 evalmeta
COPY --from=build /opt/evalmeta /opt/evalmeta
# Who mounts a project there trusts it, and its owner may have no name here.
ENV PATH=/opt/evalmeta/bin:$PATH PYTHONDONTWRITEBYTECODE=1 EVALMETA_SAFE_FOLDERS=/project
USER evalmeta
WORKDIR /project
ENTRYPOINT ["evalmeta"]
CMD ["--help"]
