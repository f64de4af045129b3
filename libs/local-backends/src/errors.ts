/** Every message of these errors is one that a user can act on: it says what is wrong and what to do. */
export class LocalBackendError extends Error {
  override name = "LocalBackendError";
}

/** The data directory holds something that PostgreSQL cannot start on. */
export class PostgresDataDamagedError extends LocalBackendError {
  override name = "PostgresDataDamagedError";
}

/** Another PostgreSQL process works on the same data directory. */
export class PostgresDataInUseError extends LocalBackendError {
  override name = "PostgresDataInUseError";
}

/** The data directory belongs to somebody else, or lies where its owner cannot reach it. */
export class PostgresDataUnreachableError extends LocalBackendError {
  override name = "PostgresDataUnreachableError";
}

/** Another nats-server works on the same store. */
export class NatsStoreInUseError extends LocalBackendError {
  override name = "NatsStoreInUseError";
}

/** There are no PostgreSQL binaries for this platform. */
export class PostgresBinariesMissingError extends LocalBackendError {
  override name = "PostgresBinariesMissingError";
}

/** No nats-server is on this machine, and none could be fetched. */
export class NatsServerMissingError extends LocalBackendError {
  override name = "NatsServerMissingError";
}

/** The port that the caller asked for is taken by another process. */
export class PortTakenError extends LocalBackendError {
  override name = "PortTakenError";
}

/** A server ended, or stayed silent, while it was being started. */
export class ServerStartError extends LocalBackendError {
  override name = "ServerStartError";
}
