// Makes the search work in pages that are opened as files (file://), for which browsers start no worker. An IFrameWorker runs the worker's
// script in a hidden frame instead. The theme looks for the name IFrameWorker, and takes the result of importScripts() for a promise.
class IFrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.onmessage = null;
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.appendChild(this.frame);
    this.window = this.frame.contentWindow;
    this.ready = new Promise((resolve) => { this.frame.onload = resolve; });
    const inside = this.window.document;
    inside.open();
    this.window.postMessage = (data) => setTimeout(() => {
      const message = new MessageEvent("message", { data });
      this.dispatchEvent(message);
      if (this.onmessage) this.onmessage(message);
    });
    inside.write(`<!DOCTYPE html><script>
      self.importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.onload = resolve;
        script.onerror = reject;
        script.src = url;
        document.body.appendChild(script);
      })), Promise.resolve());
    <\/script><body><script src="${new URL(url, document.baseURI)}"><\/script>`);
    inside.close();
  }
  postMessage(data) {
    this.ready.then(() => this.window.dispatchEvent(new MessageEvent("message", { data })));
  }
  terminate() {
    this.frame.remove();
  }
}
if (location.protocol === "file:") {
  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
}
