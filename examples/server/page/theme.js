// Sets the chosen look before the first paint. Without a choice the system's look applies. This file is not a module, because modules run
// too late.
try {
  const look = JSON.parse(localStorage.getItem('tessera/look'));
  if (look === 'light' || look === 'dark') document.documentElement.dataset.look = look;
} catch {
  // Nothing can be read: the system's look applies.
}
