/** Matches API keys of every kind, also damaged, shortened or percent-encoded ones. */
const apiKeys = /(h[csr])(?:_|%5f)[\w%-]{16,}/gi;

/** Masks API keys in a text, because clients put them in paths and request ids too. */
export function maskKeys(text: string): string {
  return text.replace(apiKeys, "$1_[hidden]");
}
