// A dropped file as text. What is not UTF-8 text is refused rather than read as rubbish.

/** The text of a file; GB18030, which many Chinese text files are in, is read too. */
export async function readText(file) {
  const bytes = await file.arrayBuffer();
  for (const encoding of ["utf-8", "gb18030"]) {
    try {
      const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
      if (!/[\u0000-\u0008\u000e-\u001f]/.test(text)) return text;
    } catch {
      // Another encoding, then.
    }
  }
  throw new Error("not a text");
}
