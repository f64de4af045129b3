/** A value as JSON in ASCII alone: what lies beyond is written as escapes. */
export function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(beyondAscii, escapeCharacter);
}

const beyondAscii = /[\u0080-\uffff]/g;

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
