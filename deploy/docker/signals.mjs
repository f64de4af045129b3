/**
 * Handles signals until the service registers its own handlers, and ends commands such as a migration. Node is process
 * 1 of a container, and Linux ignores a signal to process 1 that has no handler.
 */
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => process.exit(128));
