# A server for any model: docker build -t unmask . && docker run -p 8000:8000 -e UNMASK_API_KEY=secret unmask
FROM python:3.11-slim

# Where pip finds packages, if not at its default: --build-arg PIP_INDEX_URL=… or PIP_EXTRA_INDEX_URL=…
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1

WORKDIR /opt/unmask
COPY pyproject.toml constraints.txt README.md LICENSE CHANGELOG.md ./
COPY unmask ./unmask
RUN pip install -c constraints.txt '.[serve]' && useradd --create-home --uid 1000 unmask

USER unmask
WORKDIR /home/unmask
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --start-period=300s \
    CMD python -c "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/readyz', timeout=5)"
# It listens on every address, so it needs UNMASK_API_KEY, or --unlocked among the arguments.
ENTRYPOINT ["unmask", "serve", "--host", "0.0.0.0"]
CMD ["--model", "tiny"]
