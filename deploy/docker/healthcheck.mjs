/** Exits with 0 if the service in this container is ready. It uses Node.js, because slim images have no HTTP client. */
const { METRICS_PORT } = process.env;
const { ok } = await fetch(`http://127.0.0.1:${METRICS_PORT}/readyz`).catch(() => ({ ok: false }));
process.exit(ok ? 0 : 1);
