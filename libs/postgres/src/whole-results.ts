/**
 * Splits the bytes from PostgreSQL into whole messages, and ends the rows of a failed statement.
 *
 * The client library (postgres.js 3.4) counts the rows of a result and starts again from zero only when it reads
 * `CommandComplete`. A statement that fails after its first rows has none. The rows of the next statement on the
 * connection would then follow a gap, so that its first row reads as missing. The same happens after a lost
 * connection, because the library keeps the count for the connection that replaces it.
 *
 * Therefore an empty `CommandComplete` goes to the library before the error. Whole messages are needed to insert
 * it between two of them.
 */
const headerBytes = 5;
const errorResponse = "E".charCodeAt(0);
const dataRow = "D".charCodeAt(0);
const commandComplete = "C".charCodeAt(0);
/** `CommandComplete` with an empty tag, which leaves the result as it is. */
const endOfRows = Buffer.from([commandComplete, 0, 0, 0, 5, 0]);

export class WholeResults {
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** Size of the first held message, or of a header while the length is unknown. */
  #wantedBytes = headerBytes;
  #hasOpenRows = false;

  /** Returns the messages that are complete with this chunk, in parts that end at a message. */
  receive(chunk: Buffer): Buffer[] {
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#heldBytes < this.#wantedBytes) return [];
    return this.#split(this.#held.length === 1 ? chunk : Buffer.concat(this.#held));
  }

  /** Returns the message that ends rows after which nothing follows. */
  interrupt(): Buffer[] {
    const parts = this.#hasOpenRows ? [endOfRows] : [];
    this.#hasOpenRows = false;
    return parts;
  }

  #split(bytes: Buffer): Buffer[] {
    const parts: Buffer[] = [];
    let begin = 0;
    let at = 0;
    this.#wantedBytes = headerBytes;
    while (bytes.length - at >= headerBytes) {
      const messageBytes = 1 + bytes.readUInt32BE(at + 1);
      if (at + messageBytes > bytes.length) {
        this.#wantedBytes = messageBytes;
        break;
      }
      const type = bytes[at];
      if (type === dataRow) this.#hasOpenRows = true;
      else if (type === commandComplete) this.#hasOpenRows = false;
      else if (type === errorResponse && this.#hasOpenRows) {
        parts.push(bytes.subarray(begin, at), ...this.interrupt());
        begin = at;
      }
      at += messageBytes;
    }
    parts.push(bytes.subarray(begin, at));
    const rest = bytes.subarray(at);
    this.#held = rest.length === 0 ? [] : [rest];
    this.#heldBytes = rest.length;
    return parts.filter((part) => part.length > 0);
  }
}
