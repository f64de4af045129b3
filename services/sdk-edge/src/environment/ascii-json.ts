/** Returns a value as JSON in ASCII. All other characters are escaped. */
export function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(beyondAscii, escapeCharacter);
}

const beyondAscii = /[\u0080-\uffff]/g;

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
