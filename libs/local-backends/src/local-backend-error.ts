/** The servers of this machine cannot be provided. The message says to the user what is wrong and what to do. */
export class LocalBackendError extends Error {
  override name = "LocalBackendError";
}
