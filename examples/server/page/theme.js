// Sets the light or dark look that the reader has chosen, before the page is first drawn. Without a choice the system's look applies. This
// file is not a module, because modules run later, when the page may be drawn already.
try {
  const look = JSON.parse(localStorage.getItem('tessera/look'));
  if (look === 'light' || look === 'dark') document.documentElement.dataset.look = look;
} catch {
  // Nothing can be read: the system's look applies.
}
