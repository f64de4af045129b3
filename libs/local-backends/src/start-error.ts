/** Something that a user can set right. The message says what is wrong and what to do. */
export class StartError extends Error {
  override name = "StartError";
}
