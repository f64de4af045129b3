/** Exits 0 when this container's service is ready. Node serves as the client because slim images have none. */
const { METRICS_PORT } = process.env;
const { ok } = await fetch(`http://127.0.0.1:${METRICS_PORT}/readyz`).catch(() => ({ ok: false }));
process.exit(ok ? 0 : 1);
