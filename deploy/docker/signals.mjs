/**
 * Node is process 1 of a container, and Linux ignores a signal to process 1 that has no handler. These
 * handlers end commands such as a migration, and a service until it registers its own.
 */
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => process.exit(128));
