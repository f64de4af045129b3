/** A problem that the user can fix. The message says what is wrong and what to do. */
export class StartError extends Error {
  override name = "StartError";
}
