/**
 * Node is process 1 of a container, for which Linux ignores a signal without a handler. Until the service
 * drains on SIGTERM, and in commands that end by themselves, the signal ends the process at once.
 */
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => process.exit(128));
